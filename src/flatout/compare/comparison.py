"""The comparison of two sides: the step, its parts, what else differs, and the one sentence that says it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from flatout.compare import between, sameness, turns, words
from flatout.compare.change import Change, Outcome, of_difference, of_ratio
from flatout.compare.sameness import Difference
from flatout.compare.shift import Shift, shift
from flatout.model.case import to_plain
from flatout.model.errors import CaseUnreadable
from flatout.store.run import PARTS, Run

CONFIDENCE = 0.95
ONE_WAY = 0.9
"""An alarm asks one way only: an interval of 90 % leaves 5 % on that side. Runs that took turns tell enough to ask for
the whole interval that is shown, and so for fewer false alarms."""
CALM = 0.03
"""Share of the cores that something else may have without a word: a system is never quite still."""
LOADED = 0.5
"""By how much the stated spread grows for each share beyond that: a fifth of the cores adds 8 %."""
SHARED = 0.06
"""What runs on a shared machine differ by beyond that, though its mean speed is taken out (standard deviation; measured
on a virtual machine of two cores). A machine whose speed varies so much from second to second is taken to be shared."""
PART_STATED = 0.06
"""As `between.STATED`, for a part of the step, as a share of the part."""
PART_FLOOR = 0.01
"""No part is known better than to this share of the step."""


@dataclass(frozen=True)
class Comparison:
    before: tuple[Run, ...]
    after: tuple[Run, ...]
    step: Change
    parts: tuple[Change, ...]
    program: tuple[Difference, ...]
    environment: tuple[Difference, ...]
    spread: between.Spread
    machine: Shift | None = None
    """How its speed differed between the sides. The step after is what it would have been at the speed before."""
    least: float | None = None
    """By this share the step got slower at least, with 95 % certainty: below 0, it may have got faster."""
    max_regression: float | None = None
    in_turns: bool = False
    """Whether the runs of both sides took turns, and each was compared with its neighbour."""

    @property
    def regressed(self) -> bool:
        """Slower for sure, and by more than is allowed as far as can be told."""
        share, allowed = self.step.share, self.max_regression
        return share is not None and allowed is not None and (self.least or 0.0) > 0 and share.ratio > allowed

    @property
    def outcome(self) -> Outcome:
        return "slower" if self.regressed else self.step.outcome

    @property
    def same_program(self) -> bool:
        return not any(one.level == "other" for one in self.program)

    @property
    def same_machine(self) -> bool:
        return not any(one.level == "machine" for one in self.environment)

    @property
    def verdict(self) -> str:
        return _verdict(self)

    def to_json(self) -> dict[str, Any]:
        told = to_plain(self)
        told["verdict"] = self.verdict
        told["outcome"] = self.outcome
        told["regressed"] = self.regressed
        told["same_program"] = self.same_program
        told["same_machine"] = self.same_machine
        return told


def compare(
    before: Sequence[Run],
    after: Sequence[Run],
    max_regression: float | None = None,
    repeats: Iterable[Sequence[Run]] = (),
) -> Comparison:
    """`repeats` are groups of other runs that had nothing different about them: what the history knows of the noise."""
    for run in (*before, *after):
        if not run.median_ms > 0:
            raise CaseUnreadable(
                f"{run.name} holds no steps to compare (a case of kind {run.kind!r}). Compare cases of `flatout run`."
            )
    environment = sameness.of_environment(before, after)
    another = any(one.level == "machine" for one in environment)
    together = [] if another else turns.pairs(before, after)
    machine = None if another or together else shift(before, after)
    known = _spread(before, after, together, repeats, machine)
    enough = all(run.error is not None for run in (*before, *after))
    half = _half(known, machine, len(before), len(after), CONFIDENCE) if enough else None
    step = of_ratio("step", _typical(before), _typical(after) * (machine.factor if machine else 1.0), half)
    return Comparison(
        tuple(before),
        tuple(after),
        step,
        tuple(_part(name, before, after, step, machine) for name in _parts_of(before, after)),
        sameness.of_program(before, after),
        environment,
        known,
        machine,
        _least(step, _half(known, machine, len(before), len(after), CONFIDENCE if together else ONE_WAY)),
        max_regression,
        bool(together),
    )


def _half(known: between.Spread, machine: Shift | None, before: int, after: int, confidence: float) -> float:
    """Half the interval of the logarithm: what runs of one thing differ by, and what was taken out for the machine."""
    own = known.half_width(before, after, confidence)
    if machine is None:
        return own
    return math.hypot(own, between.student(confidence, known.freedom) * machine.error * machine.log)


def _least(step: Change, half: float) -> float | None:
    return (1 + step.share.ratio) / math.exp(half) - 1 if step.share is not None else None


def _spread(
    before: Sequence[Run],
    after: Sequence[Run],
    together: Sequence[tuple[Run, Run]],
    repeats: Iterable[Sequence[Run]],
    machine: Shift | None,
) -> between.Spread:
    own = [*before, *after]
    within = math.sqrt(fmean((run.error or 0.0) ** 2 for run in own))
    logs = [turns.as_one(together)] if together else []
    for group in repeats if together else (before, after, *repeats):
        usable = [run for run in group if run.median_ms > 0]
        even = machine is not None and all(run.pace_us and run.pace_by == before[0].pace_by for run in usable)
        logs.append([machine.level(run) if machine and even else math.log(run.median_ms) for run in usable])
    shared = min(fmean(run.follows * run.uneven for run in own), SHARED)
    return between.spread(logs, within, math.hypot(between.STATED, shared) + _busy(own))


def _busy(side: Sequence[Run]) -> float:
    """What a machine that was busy with something else adds to the spread."""
    return LOADED * max(0.0, max(run.others or 0.0 for run in side) - CALM)


def _typical(side: Sequence[Run]) -> float:
    """The mean of the runs, in logarithms, so that before and after can change places."""
    return math.exp(fmean(math.log(run.median_ms) for run in side))


def _parts_of(before: Sequence[Run], after: Sequence[Run]) -> list[str]:
    """The parts that any of the sides has at all; none where a side was not split."""
    if not all(run.parts_ms for run in (*before, *after)):
        return []
    return [name for name in PARTS if any(run.parts_ms.get(name, 0.0) > 0 for run in (*before, *after))]


def _part(name: str, before: Sequence[Run], after: Sequence[Run], step: Change, machine: Shift | None) -> Change:
    """Several parts are looked at together, so each has to be surer than the step has.

    Which of them follow the speed of the machine is not known: each is taken to follow as the step does, or not at all.
    """
    factor = machine.factor if machine else 1.0
    old, new = ([run.parts_ms.get(name, 0.0) for run in side] for side in (before, after))
    new = [factor * value for value in new]
    variance = ((1 - 1 / factor) * fmean(new) / 2) ** 2
    for side, values in ((before, old), (after, new)):
        floor = PART_FLOOR * fmean(run.median_ms for run in side)
        stated = math.hypot(PART_STATED * fmean(values), floor)
        errors = [run.part_errors.get(name, 0.0) for run in side]
        seen = between.spread([values], math.sqrt(fmean(e**2 for e in errors)), stated)
        variance += (seen.share**2 + (_busy(side) * fmean(values)) ** 2) / len(side)
    freedom = between.WEIGHT + len(old) + len(new) - 2
    half = between.student(1 - (1 - CONFIDENCE) / len(PARTS), freedom) * math.sqrt(variance)
    return of_difference(name, fmean(old), fmean(new), half if step.share is not None else None)


def _verdict(found: Comparison) -> str:
    taken = "The runs took turns, so each was compared with its neighbour." if found.in_turns else ""
    return " ".join(filter(None, (_outcome(found), words.machine(found.machine), taken)))


def _outcome(found: Comparison) -> str:
    step, share, allowed = found.step, found.step.share, found.max_regression
    times = f"{words.milliseconds(step.before_ms)} before, {words.milliseconds(step.after_ms)} after"
    if share is None:
        few = min(run.steps for run in (*found.before, *found.after))
        return f"Too few steps to tell: one of the runs has only {few}. Let it run longer ({times})."
    threshold = f"the threshold of {100 * (allowed or 0.0):g} %"
    if found.regressed and found.least is not None:
        sure = f"at least {100 * found.least:.1f} % with 95 % certainty"
        return f"Slower, past {threshold}: a step takes {words.more(share)}, {sure} ({times})."
    if step.outcome == "slower":
        within = f", but within {threshold}" if allowed is not None else ""
        return f"Slower{within}: a step takes {words.more(share)} ({times})."
    if step.outcome == "faster":
        return f"Faster: a step takes {words.more(share)} ({times})."
    return f"No measurable difference in the step: {words.change(share)} ({times})."
