"""Samples of the main thread, and which lines of the program their time belongs to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flatout.model.run_tree import PartKind, RunPart
from flatout.observe.reading.steps import Stream
from flatout.observe.run_sampler import MOST_STAGES
from flatout.source import context
from flatout.source.context import Loop

Frame = tuple[str, int, str, int]
"""File, line, function, line of its definition."""

DOMINATES = 0.6
"""Share of the time of a line that one line inside of what it calls has, from which on that one is named."""
NEARLY_ALL = 0.9
WORTH_A_LINE = 0.03
MOST_LINES = 12


@dataclass(frozen=True)
class Sample:
    """Looks at one stack, summed up."""

    span: int
    stage: int
    importing: str
    working: str
    seconds: float
    frames: tuple[Frame, ...]
    """Of the user's code, from the innermost."""


def samples(fact: dict[str, Any]) -> dict[int, Sample]:
    """By their places in the fact; rows that are damaged are left out."""
    found = {}
    for place, row in enumerate(fact.get("rows") or []):
        try:
            span, stage, importing, working, seconds, _, frames = row
            users = tuple((str(f[0]), int(f[1]), str(f[2]), int(f[3])) for f in frames)
            found[place] = Sample(int(span), int(stage), str(importing), str(working), float(seconds), users)
        except (TypeError, ValueError, IndexError):
            continue
    return found


def lines_of(found: Iterable[Sample], scale: float = 1.0, most: int = MOST_LINES) -> tuple[RunPart, ...]:
    """Where the time goes: one part for each statement at the outermost level, pinned to the deepest line that has
    most of its time."""
    named = [sample for sample in found if sample.frames]
    whole = _seconds(named)
    parts = [_pinned(group, level, scale) for group, level in _statements(named, 1)]
    parts.sort(key=lambda part: -part.seconds)
    return tuple(part for part in parts if part.seconds >= WORTH_A_LINE * whole * scale)[:most]


def _statements(found: Sequence[Sample], level: int) -> Iterator[tuple[list[Sample], int]]:
    """The samples by the line at this depth from the outside; a line such as `main()`, which has nearly all of them,
    stands for those inside of it."""
    whole = _seconds(found)
    for group in _by_line(found, level).values():
        deeper = [sample for sample in group if len(sample.frames) > level]
        if _seconds(group) >= NEARLY_ALL * whole and _seconds(deeper) >= NEARLY_ALL * _seconds(group):
            yield from _statements(deeper, level + 1)
        else:
            yield group, level


def _by_line(found: Iterable[Sample], level: int) -> dict[tuple[str, int], list[Sample]]:
    groups: dict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in found:
        if len(sample.frames) >= level:
            groups[sample.frames[-level][:2]].append(sample)
    return groups


def _pinned(group: Sequence[Sample], level: int, scale: float) -> RunPart:
    whole, inside, frame = _seconds(group), list(group), group[0].frames[-level]
    while True:
        level += 1
        best = max(_by_line(inside, level).values(), key=_seconds, default=[])
        if not best or _seconds(best) < DOMINATES * whole:
            break
        inside, frame = best, best[0].frames[-level]
    led = reversed(inside[0].frames[-level + 2 :]) if level > 2 else ()
    via = tuple(place for place in (context.where(*one[:3]) for one in led) if place is not None)
    works = max({sample.working for sample in group}, key=lambda name: _seconds_in(group, name))
    return RunPart("line", works, whole * scale, where=context.where(*frame[:3]), via=via)


def _seconds(group: Iterable[Sample]) -> float:
    return sum(sample.seconds for sample in group)


def _seconds_in(group: Sequence[Sample], package: str) -> float:
    return sum(sample.seconds for sample in group if sample.working == package)


@dataclass(frozen=True)
class Phases:
    """Which lines of the program belong to the steps and to validation, from where its streams of steps are made."""

    chosen: int | None
    steps: tuple[tuple[str, Loop], ...]
    around: frozenset[tuple[str, int]]
    """Lines that lead to the step."""
    validation: tuple[tuple[str, Loop], ...]
    calls: frozenset[tuple[str, int]]
    """Lines that call a function which is not the step, beside the loop of the steps."""
    earlier: tuple[tuple[str, Loop], ...] = ()
    """Loops that trained something else before the first of the steps."""

    def kind_of(self, sample: Sample) -> PartKind:
        """Of a sample outside of all spans."""
        if sample.importing == "exit":
            return "exit"
        if sample.importing and sample.importing != "?":
            return "import"
        if sample.working == "flatout":
            return "observer"
        if not sample.frames:
            return "import" if sample.importing else "unattributed"
        if self.chosen is not None and sample.stage <= min(self.chosen, MOST_STAGES - 1):
            return "program" if _within(sample, self.earlier) else "before"
        if _within(sample, self.steps) or (not self.steps and any(f[:2] in self.around for f in sample.frames)):
            return "steps"
        if _within(sample, self.validation) or any(frame[:2] in self.calls for frame in sample.frames):
            return "validation"
        return "program"

    def validates(self, sample: Sample) -> tuple[str, int] | None:
        """The head of the validation loop that a sample is in, or the line that calls what validates."""
        for file, loop in self.validation:
            if _within(sample, [(file, loop)]):
                return file, loop.line
        return next((frame[:2] for frame in sample.frames if frame[:2] in self.calls), None)

    def starts(self, file: str, line: int) -> PartKind | None:
        """What an iterator that is made at this line is for."""
        if any(file == known and loop.line <= line <= loop.end for known, loop in self.steps):
            return "epoch-start"
        if any(file == known and loop.line <= line <= loop.end for known, loop in self.validation):
            return "validation"
        return None


def phases(chosen: Stream | None, found: Sequence[Stream], iterated: Iterable[tuple[str, int]]) -> Phases:
    """`iterated`: lines at which a dataset is begun."""
    if chosen is None or chosen.kind in ("fit", "predict", "evaluate"):
        return Phases(chosen.id if chosen else None, (), frozenset(), (), frozenset())
    own = _loop(chosen) or _loop_of_calls(chosen)
    steps = {_loop(stream) for stream in found if stream.kind == chosen.kind} | {own}
    if chosen.kind in ("session", "function", "model"):
        steps = {own}  # other runs of a session, other functions may be anything
    lines = frozenset((str(frame[0]), int(frame[1])) for frame in chosen.stack)
    loops = {loop for loop in steps if loop is not None}
    validation, calls = set(), set()
    for stream in found:
        if stream is chosen or stream.kind not in ("session", "function", "model") or not stream.stack:
            continue
        loop = _loop(stream)
        if loop is None or loop in loops or own is None:
            continue
        if _encloses(loop, own):  # called once an epoch, without a loop of its own
            line = (str(stream.stack[0][0]), int(stream.stack[0][1]))
            if line not in lines:
                calls.add(line)
        elif stream.id > chosen.id:
            validation.add(loop)
    validation |= {loop for line in iterated if (loop := _beside(line, loops)) is not None}
    earlier = tuple(loop for loop in loops if _earlier(loop, own, chosen, found))
    return Phases(chosen.id, tuple(loops), lines, tuple(validation), frozenset(calls), earlier)


def _earlier(loop: tuple[str, Loop], own: tuple[str, Loop] | None, chosen: Stream, found: Iterable[Stream]) -> bool:
    """Whether the steps that were made in this loop are others, and came first."""
    if own is None or loop == own or _encloses(loop, own) or _encloses(own, loop):
        return False
    return any(stream.id < chosen.id and stream.kind == chosen.kind and _loop(stream) == loop for stream in found)


def _loop(stream: Stream) -> tuple[str, Loop] | None:
    """The innermost loop of the program in which a stream ticks."""
    for frame in stream.stack:
        loop = context.innermost_loop(str(frame[0]), int(frame[1]))
        if loop is not None:
            return str(frame[0]), loop
    return None


def _loop_of_calls(stream: Stream) -> tuple[str, Loop] | None:
    """For a step that was first made outside of any loop, to build its graph: the first loop that calls it by name."""
    if not stream.stack:
        return None
    file, line, name = str(stream.stack[0][0]), int(stream.stack[0][1]), stream.name.rpartition(".")[2]
    later = [at for at in context.calls_of(file, name) if at > line]
    return next(((file, loop) for at in later if (loop := context.innermost_loop(file, at)) is not None), None)


def _beside(line: tuple[str, int], steps: Iterable[tuple[str, Loop]]) -> tuple[str, Loop] | None:
    """The loop over a dataset that begins at this line, where an outer loop repeats both it and the steps."""
    file = line[0]
    head = next(((file, loop) for loop in context.loops(file) if loop.line == line[1]), None)
    if head is None:
        return None
    for step in steps:
        outer = [(file, loop) for loop in context.loops(file)]
        apart = head != step and not _encloses(head, step) and not _encloses(step, head)
        if apart and any(_encloses(one, head) and _encloses(one, step) for one in outer):
            return head
    return None


def _encloses(outer: tuple[str, Loop], inner: tuple[str, Loop]) -> bool:
    return outer[0] == inner[0] and outer[1].line < inner[1].line and inner[1].end <= outer[1].end


def _within(sample: Sample, loops: Iterable[tuple[str, Loop]]) -> bool:
    return any(
        frame[0] == file and loop.line <= frame[1] <= loop.end for file, loop in loops for frame in sample.frames
    )
