"""What Python did, step after step: pulls, conversions, feeds, tracing, new functions, where its time was sampled."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.model.case import Evidence
from flatout.model.evidence.steps import (
    Conversion,
    EagerLine,
    EagerTape,
    EpochStart,
    Feed,
    FunctionsMade,
    GraphGrowth,
    HostSync,
    LineTime,
    StepStack,
    Stream,
    ThreadWait,
    Tracing,
)
from flatout.model.location import stack_of
from flatout.model.vocabulary import EagerKind
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.steps import Measured, first_batches
from flatout.source import context

FEWEST_LOOKS = 20
"""Looks at the program within its steps, from which on they alone tell where the time of a step goes."""
GROWS = 0.3
"""Share of the runs of a session before which its graph has grown, from which that is no set-up any more."""

FACTS_OF_STEPS = ("id", "of", "name", "run_eagerly", "steps_per_execution", "jit_compile", "policy")


def streams(recording: Recording) -> list[Stream]:
    """Every way in which something happened again and again, the step or not."""
    newest = {fact["id"]: fact["count"] for fact in recording.all("stream-count")}
    return [
        Stream(fact["of"], fact.get("name"), newest.get(fact["id"], 0), stack_of(fact.get("stack")), source="hook")
        for fact in recording.all("stream")
    ]


def epoch_starts(recording: Recording, measured: Measured) -> list[EpochStart]:
    """What the first step of each epoch costs beyond an ordinary one, spread over all steps."""
    chosen = measured.clean
    if chosen.sum() < 8:
        return []
    if measured.stream.kind == "fit":
        first = first_batches(recording, measured)
        if not first.any():
            return []
        # What is traced there (a function for a last, smaller batch) is no beginning of an epoch.
        own = measured.time - measured.trace / measured.n
        excess = (np.maximum(own - 2 * np.median(measured.time[chosen]), 0) * measured.n)[first & chosen].sum()
        epochs_seen = int((first & chosen).sum())
    else:
        typical = float(np.median(measured.input[chosen]))
        long = measured.input > 5 * typical + 2 * float(np.median(measured.time[chosen]))
        excess = float(measured.input[chosen & long].sum())
        epochs_seen = int((chosen & long).sum())
    steps = int(measured.n[chosen].sum())
    return [EpochStart(float(excess) * 1e3 / steps, epochs_seen, steps, source="hook")]


def pulls(recording: Recording, measured: Measured) -> list[HostSync]:
    count = measured.count
    found = []
    for file, line, function, calls, seconds, size, how, *times in recording.last("pulls").get("rows") or []:
        found.append(
            HostSync(
                seconds * 1e3 / count,
                per_step=calls / count,
                calls=calls,
                bytes_per_step=size / count,
                how=how,
                usual=_in_a_usual_step(measured, np.array(times[0]), calls) if times else None,
                where=context.where(file, line, function),
                source="hook",
            )
        )
    return found


def _in_a_usual_step(measured: Measured, at: NDArray[np.float64], calls: int) -> float | None:
    """How often something happened in the median step, of those during which all of its times are known."""
    ends = measured.stream.rows[:, 3]
    chosen = measured.clean if calls == len(at) else measured.clean & (ends <= at.max(initial=0.0))
    if not len(at) or chosen.sum() < 3:
        return None
    begins = ends - measured.time * measured.n
    inside = np.searchsorted(at, ends) - np.searchsorted(at, begins)
    return float(np.median((inside / measured.n)[chosen]))


def conversions(recording: Recording, count: int) -> list[Conversion]:
    return [
        Conversion(
            seconds * 1e3 / count,
            per_step=calls / count,
            calls=calls,
            bytes_per_step=size / count,
            same_again=again / max(size, 1),
            different=different,
            where=context.where(file, line, function),
            source="hook",
        )
        for file, line, function, calls, seconds, size, again, different in recording.last("conversions").get("rows")
        or []
    ]


def eager_lines(recording: Recording, measured: Measured) -> list[EagerLine]:
    newest = {fact["of"]: fact for fact in recording.all("eager-lines")}
    return [_eager_line(measured, kind, row) for kind, fact in newest.items() for row in fact["rows"]]


def _eager_line(measured: Measured, kind: EagerKind, row: list[Any]) -> EagerLine:
    """What a line calls in a step. Where none of its calls are in one, all of them are told of."""
    file, line, function, first, calls, seconds, *times = row
    share = measured.share_inside(np.array(times[2])) if len(times) > 2 else None
    told = share or 1.0
    return EagerLine(
        seconds * told * 1e3 / measured.count,
        of=kind,
        calls=calls,
        per_step=calls * told / measured.count,
        function=function,
        first=first,
        outside=measured.is_outside(times[:2]) or share == 0.0,
        where=context.where(file, line, function),
        source="hook",
    )


def feeds(recording: Recording, measured: Measured) -> list[Feed]:
    found = []
    for file, line, function, calls, size, seconds, inside, stream, converted, which in (
        recording.last("feeds").get("rows") or []
    ):
        if stream != measured.stream.id:
            continue
        found.append(
            Feed(
                size / max(calls, 1),
                calls=calls,
                run_ms=seconds * 1e3 / calls,
                graph_ms=inside * 1e3 / calls,
                converted=converted / max(calls, 1),
                positions=tuple(which),
                where=context.where(file, line, function),
                source="hook",
            )
        )
    return found


def graph_growth(recording: Recording) -> list[GraphGrowth]:
    """Ops that a program keeps adding to the graph of its session."""
    fact = recording.last("graph-growth")
    rows = sorted(fact.get("rows") or [], key=lambda row: -row[3])
    if not rows or fact["runs"] < 10 or fact["grown"] < GROWS * fact["runs"]:
        return []
    return [
        GraphGrowth(
            fact["added"] / fact["grown"],
            runs=fact["runs"],
            grown=fact["grown"],
            added=fact["added"],
            where=context.where(*rows[0][:3]),
            source="hook",
        )
    ]


def tracing(measured: Measured) -> list[Tracing]:
    """What tracing costs per step after the warm-up: the traces, and the slower first run of each new graph."""
    chosen = measured.clean
    if not chosen.any() or not (measured.trace[chosen] > 0).any():
        return []
    time = measured.time * measured.n
    traced = chosen & (measured.trace > 0)
    plain = chosen & (measured.trace == 0)
    cost = float(measured.trace[traced].sum())
    how = "time spent tracing"
    if plain.sum() >= 5:
        excess = float((time[traced] - np.median(time[plain])).sum())
        if excess > cost:
            cost, how = excess, "steps that trace, against those that do not"
    steps = int(measured.n[chosen].sum())
    return [Tracing(cost * 1e3 / steps, int(traced.sum()), steps, source="hook", note=how)]


def made_functions(recording: Recording, count: int) -> list[FunctionsMade]:
    found = []
    for _, _, name, total in recording.last("functions").get("rows") or []:
        if total["made"] < 5 or not total["made_at"]:
            continue
        found.append(
            FunctionsMade(
                total["made"],
                per_step=total["made"] / count,
                trace_ms=total["trace_s"] * 1e3,
                name=name,
                traces=total["traces"],
                where=context.where(*total["made_at"][0][:3]),
                source="hook",
            )
        )
    return found


def step_location(recording: Recording, measured: Measured) -> list[Evidence]:
    """Where the step is written: the stack of the stream, and of the gradient tape when it runs eagerly."""
    stream = measured.stream
    known = {name: stream.facts[name] for name in FACTS_OF_STEPS if name in stream.facts}
    found: list[Evidence] = [
        StepStack(
            stream.kind,
            stack_of(stream.stack),
            **known,
            where=context.where(*stream.stack[0][:3]) if stream.stack else None,
            source="hook",
            other={name: fact for name, fact in stream.facts.items() if name not in known and name != "stack"},
        )
    ]
    for calls, stack in recording.last("tapes").get("rows") or []:
        where = context.where(*stack[0][:3]) if stack else None
        found.append(EagerTape(calls / measured.count, stack_of(stack), where=where, source="hook"))
    return found


def samples(recording: Recording, measured: Measured) -> list[Evidence]:
    """Which lines the time of the steps goes to. Looks during the warm-up, and while the trace window opened or closed,
    tell nothing of a step: they are left out where enough others are known."""
    rows = [[*row, []][:5] for row in recording.last("samples").get("rows") or []]
    within = [_within_steps(measured, row[4]) for row in rows]
    if sum(within) >= FEWEST_LOOKS:
        rows = [[found, *row[1:]] for found, row in zip(within, rows, strict=True) if found]
    total = sum(row[0] for row in rows) or 1
    lines: Counter[tuple[Any, ...]] = Counter()
    inside: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    stacks: dict[tuple[Any, ...], list[Any]] = {}
    waits: Counter[tuple[Any, ...]] = Counter()
    for count, users, inner, tracing_now, _ in rows:
        if not users or tracing_now:
            continue  # a line inside of a function that is being traced is not at work in the steps
        key = tuple(users[0][:3])
        if inner and inner[0].endswith("threading.py") and inner[1] in ("wait", "acquire", "join"):
            waits[key] += count
        lines[key] += count
        stacks.setdefault(key, users)
        if inner:
            inside[key][f"{inner[1]} ({inner[0]})"] += count
    on_lines = (
        LineTime(
            count / total,
            samples=count,
            of=total,
            inside=tuple(name for name, _ in inside[key].most_common(3)),
            stack=stack_of(stacks[key]),
            where=context.where(*key),
            source="sampling",
        )
        for key, count in lines.most_common(15)
    )
    waiting = (
        ThreadWait(count / total, where=context.where(*key), source="sampling") for key, count in waits.most_common(3)
    )
    return [*on_lines, *waiting]


def _within_steps(measured: Measured, moments: list[float]) -> int:
    """How many of these moments lie in steps that are neither warm-up nor touched by the trace window."""
    ends = measured.stream.rows[:, 3]
    at = np.array(moments)
    at = at[at <= ends.max(initial=0.0)]
    step = np.searchsorted(ends, at)
    begun = at >= (ends - measured.time * measured.n)[step]
    return int((measured.clean[step] & begun).sum())
