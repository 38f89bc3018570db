"""Decides which stream of ticks is the step, and measures its steps.

A program shows its steps in several ways at once. The stream to report is the one with the highest priority among those
that cover a good part of the time; of two that are alike, the one that ticks less often (the outer loop). The time of a
step runs from the end of the one before to its own end, so that input, Python and everything else between is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.model.vocabulary import StreamKind
from flatout.observe.reading import queued_steps
from flatout.observe.reading.recording import Recording
from flatout.observe.streams import TRAINING, rank_of

Floats = NDArray[np.float64]
COVERS = 0.25
"""A stream must cover this share of what the widest one covers to be the step."""
ASIDE = 0.05
"""A stream whose calls take less than this share of those of another is a look aside: a loss every fifty steps."""
MOSTLY = 0.6
TRACES = 0.2
"""Share of a step's time that is tracing, from which a step at the beginning is warm-up."""
FEWEST_BEFORE = 5
"""Steps before the window by which a program on a GPU can be judged."""


@dataclass(frozen=True)
class Stream:
    id: int
    kind: StreamKind
    name: str
    stack: list[list[Any]]
    facts: dict[str, Any]
    rows: Floats
    count: int

    @property
    def covered(self) -> float:
        """Seconds between its ticks, long gaps (another phase of the program) left out."""
        if not len(self.rows):
            return 0.0
        ends = self.rows[:, 3]
        gaps = np.diff(ends)
        own = float((self.rows[:1, 3] - self.rows[:1, 2]).sum())
        if not len(gaps):
            return own
        limit = 20 * float(np.median(gaps)) + 0.5
        return own + float(gaps[gaps <= limit].sum())

    @property
    def own(self) -> float:
        """Seconds inside of its calls."""
        return float((self.rows[:, 3] - self.rows[:, 2]).sum())


@dataclass(frozen=True)
class Measured:
    """The steps of the chosen stream. All times in seconds; one entry per tick, `n` steps each."""

    stream: Stream
    time: Floats
    """Per step."""
    n: NDArray[np.int64]
    steady: NDArray[np.bool_]
    clean: NDArray[np.bool_]
    """Neither warm-up nor touched by the opening or closing of the window."""
    in_window: NDArray[np.bool_]
    input: Floats
    trace: Floats
    call: Floats
    sync: Floats
    warmup: int

    @property
    def count(self) -> int:
        return self.stream.count

    @property
    def sample(self) -> Floats:
        """Step times to judge by. Those inside the window count too: a trace slows a step less than a noisy machine."""
        chosen = self.clean if self.clean.any() else np.ones(len(self.n), bool)
        return np.repeat(self.time[chosen], np.minimum(self.n[chosen], 1000))

    def is_outside(self, times: Sequence[float]) -> bool:
        """Whether what began and ended at these times was over before the first step, or began after the last."""
        if len(times) != 2:
            return False
        rows, is_whole = self.stream.rows, self.n.sum() >= self.count  # else steps were made after these rows
        return bool(times[1] <= rows[0, 2] or (is_whole and times[0] >= rows[-1, 3]))

    def share_inside(self, at: Floats) -> float | None:
        """Which part of these moments lies in steps, and not before, behind or between them. None where not known."""
        ends = self.stream.rows[:, 3]
        if not len(at) or self.n.sum() < self.count:
            return None
        step = np.minimum(np.searchsorted(ends, at), len(ends) - 1)
        return float(np.mean((at <= ends[step]) & (at >= (ends - self.time * self.n)[step])))


def streams(recording: Recording) -> list[Stream]:
    counts = {fact["id"]: fact["count"] for fact in recording.all("stream-count")}
    found = []
    for fact in recording.all("stream"):
        rows = recording.ticks[recording.ticks[:, 0] == fact["id"]]
        rows = rows[np.argsort(rows[:, 3], kind="stable")]  # threads put down their ticks in any order
        seen = int(rows[:, 1].sum()) if len(rows) else 0
        found.append(
            Stream(
                id=fact["id"],
                kind=fact["of"],
                name=str(fact.get("name", "")),
                stack=fact.get("stack", []),
                facts=fact,
                rows=rows,
                count=max(seen, int(counts.get(fact["id"], 0))),
            )
        )
    return found


def choose(found: list[Stream]) -> Stream | None:
    usable = [stream for stream in found if len(stream.rows)]
    if not usable:
        return None
    if any(stream.kind in TRAINING for stream in usable):
        # A validation belongs to its `fit`, however long it takes beside the training.
        usable = [stream for stream in usable if not stream.facts.get("inside")] or usable
    widest = max(stream.covered for stream in usable)
    wide = [stream for stream in usable if stream.covered >= COVERS * widest] or usable
    wide = _longest_phase(wide)
    best = max(rank_of(stream.kind) for stream in wide)
    alike = [stream for stream in wide if rank_of(stream.kind) == best]
    longest = max(stream.covered for stream in alike)
    busiest = max(stream.own for stream in alike)
    outer = (s for s in alike if s.covered >= 0.8 * longest and s.own >= ASIDE * busiest)
    return min(outer, key=lambda s: (len(s.rows), s.id), default=max(alike, key=lambda s: s.own))


def _longest_phase(wide: list[Stream]) -> list[Stream]:
    """Without the streams of training that was over before a longer one began, or began when that was over: a program
    that calls `fit` and goes on with a loop of its own trains in two phases, and kinds of steps are ranked only where
    they cover the same time."""
    training = [stream for stream in wide if stream.kind in TRAINING]
    longest = max(training, key=lambda stream: stream.covered, default=None)
    if longest is None:
        return wide
    begins, ends = longest.rows[0, 2], longest.rows[-1, 3]
    apart = {s.id for s in training if s is not longest and (s.rows[-1, 3] <= begins or s.rows[0, 2] >= ends)}
    return [stream for stream in wide if stream.id not in apart]


def measure(recording: Recording, stream: Stream) -> Measured:
    rows = stream.rows
    start, end, n = rows[:, 2], rows[:, 3], np.maximum(rows[:, 1], 1).astype(np.int64)
    previous = np.concatenate((start[:1], end[:-1]))
    begins: list[int] = []
    totals = rows[:, 4:8]
    deltas = np.diff(totals, axis=0, prepend=totals[:1])
    if stream.kind == "fit":
        # The first batch of an epoch begins with itself: what lies before (validation, a new iterator) is no step. But
        # where nearly every batch is the first (a `fit` for each batch), all that lies between is paid at every step.
        epochs = np.array([fact["at"] for fact in recording.all("epoch")])
        if len(epochs):
            crossed = np.searchsorted(epochs, end) > np.searchsorted(epochs, previous)
            if crossed.mean() <= MOSTLY:
                previous = np.where(crossed, start, previous)
                begins = _calls_of_fit(recording, end)
                # The totals of such a batch hold what lies before it as well: the trace of the validation, its input.
                deltas[crossed] = np.minimum(deltas[crossed], (end - start)[crossed, None])
                deltas[crossed, 1] = _traced_within(recording, start[crossed], end[crossed])
    touched = np.zeros(len(rows), bool)
    in_window = np.zeros(len(rows), bool)
    for window in recording.all("window-close"):
        opened, closing, done = window["opened"], window["at"], window["done"]
        in_window |= (end > opened) & (end <= closing)
        touched |= (previous < opened) & (end >= opened)
        touched |= (previous < done) & (end >= closing)
    waits = [(float(fact["at"]), float(fact["done"])) for fact in recording.all("device-wait")]
    time = queued_steps.spread((end - previous) / n, n, end, waits)
    warm = _warmup(time, deltas[:, 1], n)
    steady = np.arange(len(rows)) >= warm
    for first, last in zip(begins, [*begins[1:], len(rows)], strict=False):
        # A further `fit` of another model, or after another `compile`, begins with a trace of its own.
        if first >= warm and deltas[first, 1] > TRACES * (end[first] - previous[first]):
            steady[first : first + _warmup(time[first:last], deltas[first:last, 1], n[first:last])] = False
    return Measured(
        stream=stream,
        time=time,
        n=n,
        steady=steady,
        clean=_untraced(steady & ~touched, end, recording) if waits else steady & ~touched,
        in_window=in_window,
        input=deltas[:, 0],
        trace=deltas[:, 1],
        call=deltas[:, 2],
        sync=deltas[:, 3],
        warmup=int(n[:warm].sum()),
    )


def first_batches(recording: Recording, measured: Measured) -> NDArray[np.bool_]:
    """Which ticks of `fit` are the first of an epoch; none where no epoch was seen."""
    end = measured.stream.rows[:, 3]
    epochs = np.array([fact["at"] for fact in recording.all("epoch")])
    if measured.stream.kind != "fit" or not len(epochs) or not len(end):
        return np.zeros(len(end), bool)
    return np.concatenate(([True], np.diff(np.searchsorted(epochs, end)) > 0))


def _traced_within(recording: Recording, start: Floats, end: Floats) -> Floats:
    """Seconds of tracing that ended within each of these spans."""
    traces = sorted((fact["at"], fact["ms"] / 1e3) for fact in recording.all("trace") if fact.get("outermost"))
    at = np.array([moment for moment, _ in traces])
    until = np.concatenate((np.zeros(1), np.cumsum([seconds for _, seconds in traces])))
    within: Floats = until[np.searchsorted(at, end, "right")] - until[np.searchsorted(at, start, "right")]
    return within


def _calls_of_fit(recording: Recording, end: Floats) -> list[int]:
    """The first tick of each call of `fit` but the first: the numbers of its epochs begin again."""
    epochs = recording.all("epoch")
    again = [fact["at"] for fact, before in zip(epochs[1:], epochs, strict=False) if fact["number"] <= before["number"]]
    return sorted({index for index in np.searchsorted(end, again).tolist() if 0 < index < len(end)})


def _untraced(clean: NDArray[np.bool_], end: Floats, recording: Recording) -> NDArray[np.bool_]:
    """On a GPU the profiler slows what comes after its window as well: the steps before it count, if there are some."""
    opened = min((window["opened"] for window in recording.all("window-close")), default=np.inf)
    before = clean & (end < opened)
    return before if before.sum() >= FEWEST_BEFORE else clean


def _warmup(time: Floats, traced: Floats, n: NDArray[np.int64]) -> int:
    """Ticks at the beginning that do not count: first traces, allocations, filling buffers."""
    if len(time) <= 1:
        return len(time) if len(time) and traced[0] > TRACES * time[0] * n[0] else 0
    most = max(1, min(10, len(time) // 4))
    typical = float(np.median(time[1:]))
    slow = [i for i in range(most) if traced[i] > TRACES * time[i] * n[i] or time[i] > 2 * typical]
    return max(1, slow[-1] + 1 if slow else 1)
