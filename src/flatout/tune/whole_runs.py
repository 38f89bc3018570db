"""The claim on the whole program: original and changed runs from start to end, one after the other.

The changed program runs first: if it fails where the original does not, there is no claim. Where the time allows, pairs
follow and give the end-to-end ratio; where not, it is estimated from the steps of the changed run and what each saves.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from flatout.measure.pairs import ratio_of_few
from flatout.model.case import Interval, WholeRun
from flatout.model.errors import Internal
from flatout.trial.whole_run import Run
from flatout.tune.run_lengths import Lengths

MOST_PAIRS = 3
FURTHER = 3
"""Pairs that are added, one by one, where the first ones differ much and there is plenty of time."""
UNSURE = 1.14
"""Upper end of the interval over the ratio from which on they do: 1.12 is what three even pairs have."""
PLENTY = 3
"""Times as long as a pair takes that has to be left for it."""
LEAST_SECONDS = 45.0
"""What the first changed run gets even where the budget is used up."""
LEAST_FOR_A_PAIR = 20.0
"""What the first run of the original gets then: one pair of short runs says more than any estimate."""
TENFOLD = 10
"""Times as many steps as the run that was started, for which the gain is told as well."""
COMPARING = 1.5
"""Comparing the results of both to their end takes about as long as so many runs of the original. Further pairs of
runs are made only where there is time for that as well: they only make the interval narrower."""
PATIENCE = 1.3
"""How much longer than expected a run may take before it is stopped."""

Runner = Callable[[bool, float], Run]
"""Runs the changed program (True) or the original (False), and stops it after so many seconds."""


class Fallen(Internal):
    """The changed program does not end as the original does. The text says how it ended."""


class Different(Fallen):
    """It ends, and has computed something else. The text says what."""


class GaveUp(Fallen):
    """A lever was not at work to the end of the program. The text says which one, and why."""


class Slower(Fallen):
    """Its runs take longer, and would with ten times as many steps. The text says how long."""


class Unseen(Fallen):
    """It fails, and there was no time to see how the original ends. The text says how it failed."""


@dataclass(frozen=True)
class Saving:
    """What the claim says of one step."""

    step_seconds: float
    """Of the changed program."""
    speedup: Interval


def measure(
    run: Runner,
    saving: Saving | None,
    end: float,
    patched: bool,
    comparing: float = COMPARING,
    latest: float = 0.0,
    comparisons: int = 1,
) -> WholeRun:
    """`end`: the moment at which the budget is used up; `comparing`: runs of the original that have to fit in after
    the pairs; `latest`: until when the first pair may last, where that is later than the end; `comparisons`: changes
    that are tried by whole runs. Raises `Fallen`."""
    latest = max(end, latest)
    changed = _at_work(run(True, max(end - time.monotonic(), LEAST_SECONDS)))
    originals: list[Run] = []
    if changed.failed:
        expected = _expected([], changed, saving)
        original = run(False, max(end - time.monotonic(), LEAST_SECONDS, PATIENCE * expected))
        if not original.ends_like(changed):
            raise (Fallen if original.ended else Unseen)(changed.last_line or f"exit code {changed.exit_code}")
        _keeps_its_levers(changed)
        originals = [original]
    if not changed.ended:
        note = f"stopped after {changed.seconds:.0f} s and {changed.steps} steps, as the time was up"
        return _estimated(changed, saving, patched, note)
    changes = [changed]
    while len(originals) < MOST_PAIRS + FURTHER:
        expected = _expected(originals, changes[0], saving)
        if len(originals) == len(changes):
            further = len(originals) >= MOST_PAIRS
            if saving is None and _hopeless(originals, changes):
                break
            if further and not _unsure(originals, changes):
                break
            pair = changes[0].seconds + expected
            if end - time.monotonic() < (PLENTY if further else 1) * pair + comparing * expected:
                break
            changes.append(_at_work(run(True, PATIENCE * 2 * changes[0].seconds + 10)))
            if not changes[-1].ended:
                lasted = f"after {changes[-1].seconds:.0f} s, where the first one took {changes[0].seconds:.0f} s"
                raise Fallen(f"a further run had not ended {lasted}")
        elif originals and end - time.monotonic() < expected:
            break
        elif not originals and max(latest - time.monotonic(), LEAST_FOR_A_PAIR) < expected / PATIENCE:
            return _estimated(changed, saving, patched, "")
        original = run(False, max(PATIENCE * expected + 10, end - time.monotonic()))
        if not original.ended:
            break
        if not original.ends_like(changes[-1]):
            raise Fallen(changes[-1].last_line or f"exit code {changes[-1].exit_code}")
        _keeps_its_levers(changes[-1])
        originals.append(original)
    if not originals:
        return _estimated(changed, saving, patched, "")
    return _measured(originals, changes[: len(originals)], patched, comparisons)


def _at_work(changed: Run) -> Run:
    """The run, if it is one with the change. Of one that fails, how the original ends comes first."""
    if not changed.failed:
        _keeps_its_levers(changed)
    return changed


def _keeps_its_levers(changed: Run) -> None:
    """What a lever has stopped doing was not measured."""
    if changed.gave_up:
        raise GaveUp(changed.gave_up)


def _hopeless(originals: list[Run], changes: list[Run]) -> bool:
    """Whether each of several pairs shows a changed program that is no faster: nothing would come of a further one."""
    return len(originals) > 1 and all(b.seconds <= a.seconds for b, a in zip(originals, changes, strict=True))


def _unsure(originals: list[Run], changes: list[Run]) -> bool:
    """Whether the pairs differ so much that a few more would tell the ratio more closely, or show why they do."""
    found = _measured(originals, changes, patched=False, comparisons=1).speedup
    return found is None or found.high > UNSURE * found.ratio


def _expected(originals: list[Run], changed: Run, saving: Saving | None) -> float:
    """Seconds of a run of the original."""
    if originals:
        return statistics.fmean(one.seconds for one in originals)
    saved = changed.steps * saving.step_seconds * (saving.speedup.ratio - 1) if saving is not None else 0.0
    return changed.seconds + max(saved, 0.0)


def _measured(originals: list[Run], changes: list[Run], patched: bool, comparisons: int) -> WholeRun:
    before, after = _with_like_imports(originals, changes)
    lengths = Lengths.of(originals, changes)
    ended = f"both end with exit code {originals[0].exit_code}" if originals[0].failed else ""
    by_chance = lengths.why == "chance"
    by_side = (lengths.before, lengths.after) if by_chance else ()
    found = WholeRun(
        before_seconds=statistics.fmean(before),
        after_seconds=statistics.fmean(after),
        pairs=len(originals),
        complete=True,
        steps=changes[0].steps,
        steps_before=lengths.before[0] if lengths.before and not by_chance else 0,
        patched=patched,
        note="; ".join(filter(None, [ended, lengths.told()])),
    )
    if lengths.why == "not-known":
        return found
    return replace(
        found,
        speedup=ratio_of_few(before, after, by_side, comparisons),
        after_imports=ratio_of_few(
            [_without_imports(one) for one in originals],
            [_without_imports(one) for one in changes],
            by_side,
            comparisons,
        ),
        tenfold=None if by_chance else _tenfold(originals, changes),
    )


def _with_like_imports(originals: list[Run], changes: list[Run]) -> tuple[list[float], list[float]]:
    """Seconds of the runs of both sides, each with the mean time of all imports: no change makes these faster, and in a
    short run what they differ by is more than anything else."""
    every = [*originals, *changes]
    if not all(one.importing for one in every):
        return [one.seconds for one in originals], [one.seconds for one in changes]
    imports = statistics.fmean(one.importing for one in every)
    before, after = ([_without_imports(one) + imports for one in runs] for runs in (originals, changes))
    return before, after


def _tenfold(originals: list[Run], changes: list[Run]) -> float | None:
    """For ten times as many steps, by the time between the first step and the last of each run."""
    if not all(one.looping > 0 for one in (*originals, *changes)):
        return None
    before, after = (
        statistics.fmean(one.seconds + (TENFOLD - 1) * one.looping for one in runs) for runs in (originals, changes)
    )
    return before / after


def _without_imports(one: Run) -> float:
    return max(one.seconds - one.importing, 1e-3)


def _estimated(changed: Run, saving: Saving | None, patched: bool, note: str) -> WholeRun:
    """By the share of the steps: what is not a step takes as long as before."""
    speedup, after_imports, before, tenfold = None, None, None, None
    if saving is not None and changed.steps:
        # Steps of the race may be slower than those of the run: all of them together take no longer than it does.
        step = min(saving.step_seconds, max(changed.seconds - changed.importing, 0.0) / changed.steps)
        low, before, high = (
            changed.seconds + changed.steps * step * (ratio - 1)
            for ratio in (saving.speedup.low, saving.speedup.ratio, saving.speedup.high)
        )
        noise = ratio_of_few([1.0], [1.0])
        speedup, after_imports = (
            Interval(
                (before - left_out) / (changed.seconds - left_out),
                (low - left_out) / (changed.seconds - left_out) * noise.low,
                (high - left_out) / (changed.seconds - left_out) * noise.high,
            )
            for left_out in (0.0, min(changed.importing, 0.99 * changed.seconds))
        )
        if changed.looping > 0:
            more = (TENFOLD - 1) * changed.looping
            saved = TENFOLD * changed.steps * step * (saving.speedup.ratio - 1)
            tenfold = (changed.seconds + more + saved) / (changed.seconds + more)
        if not changed.ended:  # the longer it goes on, the nearer it comes to the ratio of a step
            most = saving.speedup.high
            speedup = replace(speedup, high=max(speedup.high, most))
            after_imports = replace(after_imports, high=max(after_imports.high, most))
    return WholeRun(
        speedup=speedup,
        after_imports=after_imports,
        before_seconds=before,
        after_seconds=changed.seconds,
        estimated=True,
        complete=changed.ended,
        steps=changed.steps,
        patched=patched,
        note=note,
        tenfold=tenfold if changed.ended else None,
    )
