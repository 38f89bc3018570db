"""The comparison of two sides: the step, its parts, what else differs, and the verdict in one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from flatout.compare import differences, formatting, pairing, run_spread
from flatout.compare.change import Change, Outcome, difference_change, ratio_change
from flatout.compare.differences import Difference
from flatout.compare.machine_speed import MachineShift, machine_shift
from flatout.model.case import to_plain
from flatout.model.errors import CaseUnreadable
from flatout.store.run_summary import PARTS, RUN_NUMBERS, Run

CONFIDENCE = 0.95
ONE_WAY = 0.9
"""A regression test is one-sided: an interval of 90 % leaves 5 % on that side. Runs that alternated are precise enough
to use the whole interval that is shown, which gives fewer false alarms."""
MARGIN = 0.8
"""Of the false alarms that may be: for several programs, as their spread is an estimate too."""
BACKGROUND_LOAD = 0.03
"""Share of the cores that other programs may use without effect: a system is never completely idle."""
SPREAD_PER_LOAD = 0.5
"""Growth of the prior spread with each share of the cores beyond that: a fifth of the cores adds 8 %."""
SHARED_MACHINE = 0.06
"""Additional spread of runs on a shared machine after the correction for its mean speed (standard deviation; measured
on a virtual machine of two cores). A machine whose speed varies this much from second to second is assumed to be
shared."""
PART_PRIOR = 0.06
"""As `run_spread.PRIOR`, for a part of the step, as a share of the part."""
RUN_PRIOR = 0.06
"""As `run_spread.PRIOR`, for numbers of the run: files are cached or not, imports take longer on a busy machine."""
PART_FLOOR = 0.01
"""No part is known more precisely than to this share of the step."""


@dataclass(frozen=True)
class Comparison:
    before: tuple[Run, ...]
    after: tuple[Run, ...]
    step: Change
    parts: tuple[Change, ...]
    program: tuple[Difference, ...]
    environment: tuple[Difference, ...]
    spread: run_spread.Spread
    machine: MachineShift | None = None
    """How the machine's speed differed between the sides. The step after is corrected to the speed before."""
    least: float | None = None
    """The step got slower by at least this share, with 95 % certainty. Below 0 it may have got faster."""
    max_regression: float | None = None
    in_turns: bool = False
    """Whether the runs of both sides alternated and were compared in pairs."""
    programs: int = 1
    """Programs that were compared together: an alarm is then certain for all of them at once."""
    run: tuple[Change, ...] = ()
    """Numbers of the run: how long it took as a whole, until its first step, for an epoch, outside of steps."""

    @property
    def regressed(self) -> bool:
        """Certainly slower, and the estimate is above the threshold."""
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
        data = to_plain(self)
        data["verdict"] = self.verdict
        data["outcome"] = self.outcome
        data["regressed"] = self.regressed
        data["same_program"] = self.same_program
        data["same_machine"] = self.same_machine
        return data


def compare(
    before: Sequence[Run],
    after: Sequence[Run],
    max_regression: float | None = None,
    repeats: Iterable[Sequence[Run]] = (),
) -> Comparison:
    """`repeats` are groups of other runs of the same state, from the history: they show the noise."""
    for run in (*before, *after):
        if not run.median_ms > 0:
            raise CaseUnreadable(
                f"{run.name} has no steps to compare (its kind is {run.kind!r}). Compare cases of `flatout run`."
            )
    all_runs = (*before, *after)
    environment = differences.environment_differences(before, after)
    other_machine = any(one.level == "machine" for one in environment)
    paired = [] if other_machine else pairing.pairs(before, after)
    machine = None if other_machine or paired else machine_shift(before, after)
    known = _spread(before, after, paired, repeats, machine)
    enough = all(run.error is not None for run in (*before, *after))
    half = _half(known, machine, len(before), len(after), CONFIDENCE) if enough else None
    step = ratio_change("step", _typical(before), _typical(after) * (machine.factor if machine else 1.0), half)
    return Comparison(
        tuple(before),
        tuple(after),
        step,
        tuple(_part(name, before, after, step, machine) for name in _parts_of(before, after)),
        differences.program_differences(before, after),
        environment,
        known,
        machine,
        _least(step, _half(known, machine, len(before), len(after), CONFIDENCE if paired else ONE_WAY)),
        max_regression,
        bool(paired),
        run=tuple(_of_run(name, before, after) for name in RUN_NUMBERS if all(name in one.run_ms for one in all_runs)),
    )


def _of_run(name: str, before: Sequence[Run], after: Sequence[Run]) -> Change:
    """A number of the run. Several are tested at once, so each needs a higher confidence than the step."""
    logs = [[math.log(run.run_ms[name]) for run in side] for side in (before, after)]
    known = run_spread.estimate(logs, 0.0, RUN_PRIOR + _busy([*before, *after]))
    half = known.half_width(len(before), len(after), 1 - (1 - CONFIDENCE) / len(RUN_NUMBERS))
    return ratio_change(name, math.exp(fmean(logs[0])), math.exp(fmean(logs[1])), half)


def among_others(found: Comparison, spread: run_spread.Spread, programs: int, left: int) -> Comparison:
    """The comparison as one of several: with the spread of runs that all of them show, and so sure that of all of them
    together none is a false alarm with 95 %. `left`: those that are still to be judged (Holm)."""
    before, after = len(found.before), len(found.after)
    half = _half(spread, found.machine, before, after, CONFIDENCE) if found.step.share is not None else None
    step = ratio_change("step", found.step.before_ms, found.step.after_ms, half)
    sure = 1 - MARGIN * (1 - (CONFIDENCE if found.in_turns else ONE_WAY)) / left
    least = _least(step, _half(spread, found.machine, before, after, sure))
    return replace(found, step=step, spread=spread, least=least, programs=programs)


def _half(known: run_spread.Spread, machine: MachineShift | None, before: int, after: int, confidence: float) -> float:
    """Half the interval of the logarithm: the spread of runs, and the error of the correction for the machine."""
    own = known.half_width(before, after, confidence)
    if machine is None:
        return own
    return math.hypot(own, run_spread.student_quantile(confidence, known.freedom) * machine.error * machine.log)


def _least(step: Change, half: float) -> float | None:
    return (1 + step.share.ratio) / math.exp(half) - 1 if step.share is not None else None


def _spread(
    before: Sequence[Run],
    after: Sequence[Run],
    paired: Sequence[tuple[Run, Run]],
    repeats: Iterable[Sequence[Run]],
    machine: MachineShift | None,
) -> run_spread.Spread:
    own = [*before, *after]
    within = math.sqrt(fmean((run.error or 0.0) ** 2 for run in own))
    logs = [pairing.pair_differences(paired)] if paired else []
    for group in repeats if paired else (before, after, *repeats):
        usable = [run for run in group if run.median_ms > 0]
        even = machine is not None and all(run.pace_us and run.pace_by == before[0].pace_by for run in usable)
        logs.append([machine.level(run) if machine and even else math.log(run.median_ms) for run in usable])
    shared = min(fmean(run.follows * run.uneven for run in own), SHARED_MACHINE)
    return run_spread.estimate(logs, within, math.hypot(run_spread.PRIOR, shared) + _busy(own))


def _busy(side: Sequence[Run]) -> float:
    """What other programs on the machine add to the spread."""
    return SPREAD_PER_LOAD * max(0.0, max(run.others or 0.0 for run in side) - BACKGROUND_LOAD)


def _typical(side: Sequence[Run]) -> float:
    """The geometric mean of the runs, so that swapping the sides inverts the ratio."""
    return math.exp(fmean(math.log(run.median_ms) for run in side))


def _parts_of(before: Sequence[Run], after: Sequence[Run]) -> list[str]:
    """The parts that are not zero on both sides; empty if the step of a run was not split."""
    if not all(run.parts_ms for run in (*before, *after)):
        return []
    return [name for name in PARTS if any(run.parts_ms.get(name, 0.0) > 0 for run in (*before, *after))]


def part_changes(
    names: Sequence[str], before: Sequence[Run], after: Sequence[Run], step: Change, machine: MachineShift | None
) -> tuple[Change, ...]:
    """How other parts of the step changed than those of `PARTS`: `parts_ms` of these runs has their milliseconds."""
    return tuple(_part(name, before, after, step, machine, len(names)) for name in names)


def _part(
    name: str,
    before: Sequence[Run],
    after: Sequence[Run],
    step: Change,
    machine: MachineShift | None,
    tested: int = len(PARTS),
) -> Change:
    """Several parts are tested at once, so each needs a higher confidence than the step.

    Which of them follow the speed of the machine is not known: each may follow as the step does, or not at all.
    """
    factor = machine.factor if machine else 1.0
    old, new = ([run.parts_ms.get(name, 0.0) for run in side] for side in (before, after))
    new = [factor * value for value in new]
    variance = ((1 - 1 / factor) * fmean(new) / 2) ** 2
    for side, values in ((before, old), (after, new)):
        floor = PART_FLOOR * fmean(run.median_ms for run in side)
        prior = math.hypot(PART_PRIOR * fmean(values), floor)
        errors = [run.part_errors.get(name, 0.0) for run in side]
        seen = run_spread.estimate([values], math.sqrt(fmean(e**2 for e in errors)), prior)
        variance += (seen.share**2 + (_busy(side) * fmean(values)) ** 2) / len(side)
    freedom = run_spread.PRIOR_WEIGHT + len(old) + len(new) - 2
    half = run_spread.student_quantile(1 - (1 - CONFIDENCE) / tested, freedom) * math.sqrt(variance)
    return difference_change(name, fmean(old), fmean(new), half if step.share is not None else None)


def _verdict(found: Comparison) -> str:
    paired = "The runs of both sides alternated and were compared in pairs." if found.in_turns else ""
    return " ".join(filter(None, (_outcome(found), formatting.machine_note(found.machine), paired)))


def _outcome(found: Comparison) -> str:
    step, share, allowed = found.step, found.step.share, found.max_regression
    times = f"{formatting.milliseconds(step.before_ms)} before, {formatting.milliseconds(step.after_ms)} after"
    if share is None:
        few = min(run.steps for run in (*found.before, *found.after))
        return f"Too few steps to decide: one of the runs has only {few}. Run it for longer ({times})."
    threshold = f"the threshold of {100 * (allowed or 0.0):g} %"
    if found.regressed and found.least is not None:
        sure = f"at least {100 * found.least:.1f} % more with 95 % certainty"
        return f"Slower, above {threshold}: a step takes {formatting.more(share)}, {sure} ({times})."
    if step.outcome == "slower" and allowed is not None and share.ratio > allowed:
        together = f" for {found.programs} programs at once" if found.programs > 1 else ""
        return f"Slower, but not certain enough{together}: a step takes {formatting.more(share)} ({times})."
    if step.outcome == "slower":
        within = f", but within {threshold}" if allowed is not None else ""
        return f"Slower{within}: a step takes {formatting.more(share)} ({times})."
    if step.outcome == "faster":
        return f"Faster: a step takes {formatting.more(share)} ({times})."
    return f"No measurable difference in the step: {formatting.change(share)} ({times})."
